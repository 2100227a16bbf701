// Has Node take `coracle/workers` for `cloudflare:workers`, which libraries that are written for Workers import:
// `node --import coracle/register app.js`.

import { register } from "node:module";

register(new URL("./workers-hook.js", import.meta.url));
