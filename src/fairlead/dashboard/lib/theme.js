// Dark and light. Until somebody chooses, the theme of the system counts.
const KEY = "fairlead-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

export function switchTheme() {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem(KEY, theme);
  document.documentElement.dataset.theme = theme;
}

system.addEventListener("change", () => {
  if (!localStorage.getItem(KEY)) document.documentElement.dataset.theme = system.matches ? "dark" : "light";
});
