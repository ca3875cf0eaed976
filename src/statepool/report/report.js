(() => {
  "use strict";
  const root = document.documentElement, tip = document.getElementById("tip");

  // Theme: the system's, until the reader chooses. A page opened from disk may not be allowed to remember.
  const keep = (theme) => { try { localStorage.setItem("statepool-theme", theme); } catch { /* not remembered */ } };
  try { const kept = localStorage.getItem("statepool-theme"); if (kept) root.dataset.theme = kept; } catch { /* none kept */ }
  document.getElementById("theme").addEventListener("click", () => {
    const dark = getComputedStyle(root).colorScheme === "dark";
    root.dataset.theme = dark ? "light" : "dark";
    keep(root.dataset.theme);
  });

  // Values: on pointing, on tapping, or step by step with the arrow keys of a focused chart.
  let lit = null;
  const hide = () => { lit?.classList.remove("lit"); lit = null; tip.hidden = true; };
  const show = (target) => {
    hide();
    lit = target;
    target.classList.add("lit");
    tip.textContent = target.dataset.tip;
    tip.hidden = false;
    const spot = target.getBoundingClientRect(), size = tip.getBoundingClientRect();
    const left = spot.left + spot.width / 2 - size.width / 2, above = spot.top - size.height - 8;
    tip.style.left = `${Math.max(6, Math.min(left, innerWidth - size.width - 6))}px`;
    tip.style.top = `${above > 4 ? above : spot.bottom + 8}px`;
  };
  const targetOf = (event) => event.target.closest?.(".tip");
  document.addEventListener("pointerover", (event) => { const target = targetOf(event); if (target) show(target); });
  document.addEventListener("pointerout", (event) => { if (targetOf(event) && event.pointerType === "mouse") hide(); });
  document.addEventListener("pointerdown", (event) => { const target = targetOf(event); if (target) show(target); else hide(); });
  document.addEventListener("scroll", hide, { passive: true });
  for (const svg of document.querySelectorAll(".drawing svg")) {
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") hide();
      if (!step) return;
      const targets = [...svg.querySelectorAll(".tip")];
      if (!targets.length) return;
      event.preventDefault();
      const at = targets.indexOf(lit);
      show(targets[at < 0 ? (step > 0 ? 0 : targets.length - 1) : (at + step + targets.length) % targets.length]);
    });
  }

  // Contents: open beside the page, folded above it; the study being read is marked.
  const contents = document.getElementById("contents"), roomy = matchMedia("(min-width: 1100px)");
  const fold = () => { contents.open = roomy.matches; };
  fold();
  roomy.addEventListener("change", fold);
  const links = new Map([...document.querySelectorAll("nav li a")].map((link) => [link.hash.slice(1), link]));
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) links.get(entry.target.id)?.classList.toggle("here", entry.isIntersecting);
  }, { rootMargin: "-20% 0px -70% 0px" });
  for (const section of document.querySelectorAll("section.study")) watcher.observe(section);
})();
