// A real identity provider for one test: oidc-provider, with one client and whoever signs in.
// Nobody reads what it says after its first line; a closed pipe would end it.
console.info = console.warn = () => {};
const [modules, port, redirect, secret] = process.argv.slice(2);
const { default: Provider } = await import(`${modules}/node_modules/oidc-provider/lib/index.js`);

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{ client_id: "saveguard", client_secret: secret, redirect_uris: [redirect] }],
  claims: { openid: ["sub", "role", "companies"], profile: ["name"] },
  conformIdTokenClaims: false,
  cookies: { keys: ["for one test"] },
  findAccount: async (context, id) => ({
    accountId: id,
    claims: async () => ({ sub: id, name: "Olga Openid", role: "editor", companies: ["acme"] }),
  }),
});
provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
