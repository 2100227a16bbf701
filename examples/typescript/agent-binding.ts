// The same agent as a Worker would load it, through a binding: `env.LOADER` is one here too, so such code moves as it is.
//
// `clients/typescript/check` builds it and runs it against a server. With the package installed, compiled by your own build:
// `node agent-binding.js ws://127.0.0.1:7071`.

import * as coracle from "coracle";

/** What a Worker finds in its `env`. */
interface Env {
  LOADER: coracle.WorkerLoader;
}

class ChatRoom extends coracle.RpcTarget {
  readonly messages: string[] = [];

  async send(author: string, text: string): Promise<void> {
    this.messages.push(`${author}: ${text}`);
  }

  async last(count: number): Promise<string[]> {
    return this.messages.slice(-count);
  }
}

async function runAgent(env: Env, chatRoomRpcStub: ChatRoom, param: { topic: string }): Promise<unknown> {
  // Have your model generate code like this.
  let agentCode: string = `
    export default {
      async myAgent(param, env, ctx) {
        const read = await env.CHAT_ROOM.last(10);
        await env.CHAT_ROOM.send("agent", "I have read " + read.length + " about " + param.topic);
        return read.filter((message) => message.includes(param.topic));
      },
    };
  `;

  // Load a worker that runs the code, with the chat room to talk to and no internet.
  let worker = env.LOADER.load({
    compatibilityDate: "2026-03-01",
    mainModule: "agent.js",
    modules: {
      "agent.js": agentCode,
    },
    env: {
      CHAT_ROOM: chatRoomRpcStub,
    },
    globalOutbound: null,
  });

  // Call what the agent's code exports.
  return await worker.getEntrypoint().myAgent(param);
}

export async function main(url: string): Promise<{ found: unknown; messages: string[] }> {
  const loader = await coracle.connect(url);
  try {
    const chatRoom = new ChatRoom();
    await chatRoom.send("Ann", "who brings the tea?");
    await chatRoom.send("Bo", "the train is late");
    const found = await runAgent({ LOADER: coracle.workerLoader(loader) }, chatRoom, { topic: "tea" });
    return { found, messages: chatRoom.messages };
  } finally {
    loader[Symbol.dispose]();
  }
}

const url = process.argv[2];
if (url?.startsWith("ws")) console.log(await main(url));
