// A typed client made from the service's own document. In a folder with this file, and `statepool serve` running:
//   npm install openapi-typescript openapi-fetch typescript@5 @types/node
//   npx openapi-typescript http://127.0.0.1:8000/schema --default-non-nullable false -o statepool.ts
//   npx tsc --strict --module nodenext --target es2022 --types node --allowImportingTsExtensions \
//     --rewriteRelativeImportExtensions client.mts && node client.mjs
import createClient from "openapi-fetch";
import type { paths } from "./statepool.ts";

const url = process.argv[2] ?? "http://127.0.0.1:8000";
const client = createClient<paths>({ baseUrl: url });
const name = { path: { name: "typescript" } };

const made = await client.PUT("/v1/pools/{name}", {
  params: name,
  body: {
    actions: ["plain", "discount"], states: ["left", "cart"], P: [[0.8, 0.2], [0.6, 0.4]],
    settings: { reward_bounds: [0, 100] },
  },
});
if (made.error) throw new Error(made.error.error);

const ticket = crypto.randomUUID(); // one of our own: asking again is asking for the same
for (let i = 0; i < 2; i++) {
  const { data, error } = await client.POST("/v1/pools/{name}/decisions", { params: name, body: { ticket } });
  if (error) throw new Error(error.error);
  console.log(data);
}
const one = { path: { ...name.path, ticket } };
await client.PUT("/v1/pools/{name}/decisions/{ticket}/state", { params: one, body: { state: "cart" } });
await client.PUT("/v1/pools/{name}/decisions/{ticket}/outcome", { params: one, body: { reward: 25 } });
const refused = await client.PUT("/v1/pools/{name}/decisions/{ticket}/outcome", { params: one, body: { reward: 26 } });
console.log(refused.response.status, refused.error?.error);
console.log((await client.GET("/v1/pools/{name}/decisions/{ticket}", { params: one })).data);
