// Runs before the first paint, so that a page never flashes in the other theme.
document.documentElement.dataset.theme =
  localStorage.getItem("fairlead-theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
