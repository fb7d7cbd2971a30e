// Keeps the page as the daemon has it. Without this script the page is complete, as of when it was loaded.
"use strict";

const live = document.getElementById("live");
const announced = document.getElementById("announced");
const help = document.getElementById("help");
const search = document.getElementById("q");

// Times are absolute in the page; here each becomes an age, with the time as its title.
function age(seconds) {
  if (seconds < 5) return "now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min ago`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h ago`;
}

function showAges(within) {
  for (const time of within.querySelectorAll("main time")) {
    const at = Date.parse(time.dateTime);
    if (Number.isNaN(at)) continue;
    const text = age(Math.max(0, Math.round((Date.now() - at) / 1000)));
    time.title = time.dateTime;
    if (time.textContent !== text) time.textContent = text;
  }
}

// What in a part has the focus, so that it can be found again in the new text of the part.
function focusIn(part) {
  const focused = document.activeElement;
  if (focused === part || !part.contains(focused)) return null;
  return focused.id ? { id: focused.id } : { href: focused.getAttribute("href") };
}

function restoreFocus(part, was) {
  if (!was) return;
  const all = [...part.querySelectorAll("a, button, [tabindex]")];
  const again = all.find((it) => (was.id ? it.id === was.id : it.getAttribute("href") === was.href));
  (again || part).focus({ preventScroll: true });
}

function markNew(part, known) {
  for (const item of [...part.querySelectorAll("li")].reverse()) {
    const text = item.querySelector(".what").textContent;
    if (known.has(item.querySelector("time").dateTime + text)) continue;
    item.classList.add("new");
    announced.textContent = text;
  }
}

function eventsOf(part) {
  const of = (item) => item.querySelector("time").dateTime + item.querySelector(".what").textContent;
  return new Set([...part.querySelectorAll("li")].map(of));
}

function replace(name, html) {
  const part = document.getElementById(name);
  const was = focusIn(part);
  const scrolled = [...part.querySelectorAll(".table, .events")].map((it) => [it.scrollLeft, it.scrollTop]);
  const known = name === "events" ? eventsOf(part) : null;
  part.innerHTML = html;
  [...part.querySelectorAll(".table, .events")].forEach((it, at) => {
    if (scrolled[at]) [it.scrollLeft, it.scrollTop] = scrolled[at];
  });
  restoreFocus(part, was);
  showAges(document);
  if (known) markNew(part, known);
}

function say(state, text) {
  live.className = `live ${state}`;
  if (live.textContent !== text) live.textContent = text;
}

const parts = ["head", "neighbors", "services", "segment", "pools", "prefixes", "events"];
const source = new EventSource(`events?seen=${encodeURIComponent(document.body.dataset.seen)}`);
source.onopen = () => say("on", "live");
source.onerror = () => {
  const closed = source.readyState === EventSource.CLOSED;
  say("off", closed ? "not live: load the page again" : "no connection; trying again");
};
for (const part of parts) source.addEventListener(part, (event) => replace(part, event.data));

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && event.target === search) search.blur();
  if (event.target.closest("input, dialog")) return;
  const section = parts[Number(event.key)];
  if (event.key === "/") {
    search.focus();
    search.select();
  } else if (event.key === "?") {
    help.showModal();
  } else if (section && section !== "head") {
    const target = document.getElementById(section);
    target.scrollIntoView();
    target.focus({ preventScroll: true });
  } else {
    return;
  }
  event.preventDefault();
});

showAges(document);
setInterval(() => showAges(document), 1000);
