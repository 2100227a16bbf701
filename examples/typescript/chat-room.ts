// An agent's code, which nobody has read, gets one object of ours to use and nothing else: no network, no files.
//
// `clients/typescript/check` builds it and runs it against a server. With the package installed, compiled by your own
// build: `node chat-room.js ws://127.0.0.1:7071`, where `coracle serve --listen-web 127.0.0.1:7071` listens.

import * as coracle from "coracle";

class ChatRoom extends coracle.RpcTarget {
  readonly posted: string[] = [];

  async post(text: string): Promise<number> {
    return this.posted.push(text);
  }
}

export async function main(url: string): Promise<{ answer: unknown; posted: string[]; refused: string; stopped: string }> {
  // Have your model generate code like this.
  const agentCode: string = `
    export default {
      async myAgent(param, env, ctx) {
        await env.CHAT_ROOM.post("I was asked about " + param);
        return { about: param, posts: await env.CHAT_ROOM.post("done") };
      },
      async curious() {
        return (await fetch("https://example.com/")).status;
      },
      async stubborn() {
        for (;;);
      },
    };
  `;

  const loader = await coracle.connect(url);
  try {
    const chatRoom = new ChatRoom();
    // Load a worker for the code.
    const worker = loader.load({
      compatibilityDate: "2026-03-01",
      mainModule: "agent.js",
      modules: { "agent.js": agentCode },
      // What the code may use: this chat room.
      env: { CHAT_ROOM: chatRoom },
      // Nothing else: the internet can't be reached.
      globalOutbound: null,
      limits: { cpuMs: 100 },
    });
    // Call what the code exports.
    const answer = await worker.getEntrypoint().myAgent("the weather");
    const refused = await worker.getEntrypoint().curious(null).then(String, (error: Error) => error.message);
    const stopped = await worker.getEntrypoint().stubborn(null).then(String, (error: unknown) => {
      if (error instanceof coracle.VerdictError) return error.verdict.limitName;
      throw error;
    });
    return { answer, posted: chatRoom.posted, refused, stopped };
  } finally {
    loader[Symbol.dispose]();
  }
}

const url = process.argv[2];
if (url?.startsWith("ws")) console.log(await main(url));
