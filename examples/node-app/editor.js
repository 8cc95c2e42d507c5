/* What the page runs: mounts the editor with a token of whoever is signed in. */
const element = document.getElementById("editor");
const status = document.getElementById("status");
const { server, document: id, operation } = JSON.parse(element.dataset.open);
const { mount } = await import(`${server}/client/saveguard.js`);

await mount({
  element,
  server,
  document: id,
  operation,
  getToken: async () => (await fetch("/token", { method: "POST" })).text(),
  on: {
    ready: () => { status.textContent = "Open"; },
    version: (version) => { status.textContent = `Version ${version.version} by ${version.author_name}`; },
    error: (error) => { status.textContent = error.message; },
  },
});
