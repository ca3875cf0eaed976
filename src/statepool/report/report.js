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

  // Values: on pointing or tapping.
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
  // Contents: open beside the page, folded above it.
  const contents = document.getElementById("contents"), roomy = matchMedia("(min-width: 1100px)");
  const fold = () => { contents.open = roomy.matches; };
  fold();
  roomy.addEventListener("change", fold);
})();
