// source: workers-sdk issue 13263
// rule: a function that is given is really called, with the data
// expected: {"got":{"a":[1,{"b":2}]},"answer":"ok"}
import { RpcStub } from "cloudflare:workers";
export default {
  async run(_) {
    let got;
    const tool = new RpcStub((data) => { got = data; return "ok"; });
    const answer = await tool({ a: [1, { b: 2 }] });
    return { got, answer };
  },
};
