// The page that draws a picture.

import "./drawing.js";

const element = Object.fromEntries([...document.querySelectorAll("[id]")].map((one) => [one.id, one]));

element.form.onsubmit = (event) => {
  event.preventDefault();
  const duration = element.duration.value || undefined;
  element.drawing.draw({ source: element.source.value, kind: element.kind.value, duration }, (working) => {
    element.draw.disabled = working;
    element.stop.disabled = !working;
  });
};
element.stop.onclick = () => element.drawing.stop();
