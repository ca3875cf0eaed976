// Typeset what arithmatex has marked, also after instant navigation.
const render = () =>
  renderMathInElement(document.body, {
    delimiters: [
      { left: "\\[", right: "\\]", display: true },
      { left: "\\(", right: "\\)", display: false },
    ],
    macros: {
      "\\E": "\\mathbb{E}", "\\F": "\\mathcal{F}", "\\ip": "\\langle #1,#2\\rangle",
      "\\Var": "\\operatorname{Var}", "\\Cov": "\\operatorname{Cov}", "\\ch": "\\hat c",
    },
    throwOnError: false,
  });
window.document$ ? document$.subscribe(render) : document.addEventListener("DOMContentLoaded", render);
