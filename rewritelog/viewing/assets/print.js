// Plots keep the width that they have on the screen: on paper all is made smaller, and text larger.
"use strict";

(() => {
  const PAPER_WIDTH = 700, TEXT_HEIGHT = 11; // A4 and Letter upright, between usual margins

  addEventListener("beforeprint", () => {
    const zoom = Math.min(1, PAPER_WIDTH / document.body.clientWidth);
    document.body.style.zoom = zoom;
    document.body.style.setProperty("--text-on-paper", `${TEXT_HEIGHT / zoom}px`);
  });
  addEventListener("afterprint", () => {
    document.body.style.zoom = "";
  });
})();
