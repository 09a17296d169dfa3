"use strict";
(() => {
  // A page of nodes is in the document at a time, so that thousands of them are no burden to browsers and readers.
  const PAGE = 100;
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const [query, state, driver] = ["query", "state", "driver"].map(byId);
  const body = document.querySelector("#map tbody");
  let found = [];
  let page = 0;

  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };

  for (const name of data.drivers) driver.append(element("option", {}, name));

  const nodes = data.nodes.map(([name, devices, counters]) => ({
    name,
    devices,
    counters,
    text: [name, ...devices.flatMap((d) => [data.drivers[d[0]], d[1], d[2], d[4], d[5], d[6], d[7]])].join("\n").toLowerCase(),
  }));

  const numbers = (devices) => {
    const counts = data.states.map(() => 0);
    for (const device of devices) counts[device[3]] += 1;
    return counts;
  };

  const words = (counts) =>
    data.states.map((name, place) => [counts[place], name]).filter(([count]) => count).map(([count, name]) => `${count} ${name}`).join(", ") || "no devices";

  const details = (node, devices) => {
    const made = element("details", {}, element("summary", {}, words(numbers(devices))));
    made.addEventListener("toggle", () => {
      if (!made.open || made.querySelector("table")) return;
      const rows = devices.map((d) =>
        element(
          "tr", {},
          element("th", { scope: "row" }, d[2]),
          ...[data.drivers[d[0]], d[1], d[4], data.states[d[3]], d[5], d[6], d[7]].map((cell) => element("td", {}, cell)),
        ));
      const heads = ["Device", "Driver", "Pool", "Type", "State", "Claims", "Pods", "Taints"];
      made.append(
        element(
          "table", {},
          element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, head)))),
          element("tbody", {}, ...rows),
        ));
      for (const [name, used, total, percent] of node.counters) {
        const bar = element("span", { class: "bar", role: "img", "aria-label": `${percent} % used` }, element("span", {}));
        bar.firstChild.style.width = `${percent}%`;
        made.append(element("div", {}, bar, ` ${name}: ${used} of ${total} used`));
      }
    });
    return made;
  };

  const row = ({ node, devices }) => {
    const squares = devices.map((d) =>
      element("span", { class: `square ${data.states[d[3]]}`, title: `${d[2]}: ${data.states[d[3]]}`, "aria-hidden": "true" }));
    const free = numbers(devices)[data.states.indexOf("free")];
    return element(
      "tr", {},
      element("th", { scope: "row" }, node.name),
      element("td", {}, ...squares, details(node, devices)),
      element("td", {}, `${free}/${devices.length}`),
    );
  };

  const show = () => {
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    page = Math.min(Math.max(0, page), pages - 1);
    body.replaceChildren(...found.slice(page * PAGE, (page + 1) * PAGE).map(row));
    byId("count").textContent = `${found.length} of ${nodes.length} nodes`;
    byId("page").textContent = `page ${page + 1} of ${pages}`;
    byId("previous").disabled = page === 0;
    byId("next").disabled = page + 1 >= pages;
  };

  const filter = () => {
    const wanted = query.value.trim().toLowerCase();
    const stateNumber = data.states.indexOf(state.value);
    const driverNumber = data.drivers.indexOf(driver.value);
    found = [];
    for (const node of nodes) {
      if (wanted && !node.text.includes(wanted)) continue;
      const devices = driverNumber < 0 ? node.devices : node.devices.filter((d) => d[0] === driverNumber);
      if (driverNumber >= 0 && !devices.length) continue;
      if (stateNumber >= 0 && !devices.some((d) => d[3] === stateNumber)) continue;
      found.push({ node, devices });
    }
    page = 0;
    show();
    const parts = { q: query.value, state: state.value, driver: driver.value };
    const hash = new URLSearchParams(Object.entries(parts).filter(([, value]) => value)).toString();
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  };

  // The filter stands in the address, so that a view can be kept and passed on.
  const start = new URLSearchParams(location.hash.slice(1));
  query.value = start.get("q") || "";
  state.value = start.get("state") || "";
  driver.value = start.get("driver") || "";
  for (const field of [query, state, driver]) field.addEventListener("input", filter);
  byId("filter").addEventListener("submit", (event) => event.preventDefault());
  byId("previous").addEventListener("click", () => { page -= 1; show(); });
  byId("next").addEventListener("click", () => { page += 1; show(); });
  filter();
})();
