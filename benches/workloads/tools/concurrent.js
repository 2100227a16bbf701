import { WorkerEntrypoint } from "cloudflare:workers";
export default class extends WorkerEntrypoint {
  async run(tool) {
    const answers = await Promise.all(Array.from({ length: 1000 }, (_, call) => tool(call)));
    return answers.reduce((sum, answer) => sum + answer);
  }
}
