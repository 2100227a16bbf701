import { WorkerEntrypoint } from "cloudflare:workers";
export default class extends WorkerEntrypoint {
  async run(tool) {
    let sum = 0;
    for (let call = 0; call < 10; call++) sum += await tool(call);
    return sum;
  }
}
