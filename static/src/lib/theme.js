// The theme toggle: follows the system until a person chooses; choosing the system's own theme again follows it again.

const system = matchMedia("(prefers-color-scheme: dark)");

/** @returns {"light" | "dark"} the theme in force */
export function currentTheme() {
  const chosen = document.documentElement.dataset.theme;
  if (chosen === "light" || chosen === "dark") return chosen;
  return system.matches ? "dark" : "light";
}

/** @param {"light" | "dark"} theme */
function setTheme(theme) {
  const follows = theme === (system.matches ? "dark" : "light");
  if (follows) delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    if (follows) localStorage.removeItem("theme");
    else localStorage.setItem("theme", theme);
  } catch {
    // Storage may be off; the choice then lasts for this page.
  }
}

/** Wires the header's toggle. */
export function startTheme() {
  const button = document.querySelector("[data-theme-toggle]");
  if (!(button instanceof HTMLButtonElement)) return;
  const show = () => {
    const next = currentTheme() === "dark" ? "light" : "dark";
    button.title = `${next} theme`;
    button.setAttribute("aria-label", `Switch to the ${next} theme`);
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    setTheme(currentTheme() === "dark" ? "light" : "dark");
    show();
  });
  system.addEventListener("change", show);
  show();
}
