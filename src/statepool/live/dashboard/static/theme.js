"use strict";
// Before the page is drawn, so that a chosen theme does not flash.
try {
  const kept = localStorage.getItem("statepool-theme");
  if (kept) document.documentElement.dataset.theme = kept;
} catch { /* none kept */ }
