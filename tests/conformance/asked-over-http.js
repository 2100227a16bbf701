// `GET /QUESTION`: workerd is asked over HTTP.
import questions from "questions.js";
export * from "questions.js";
export default {
  async fetch(request, env, ctx) {
    return new Response(await questions.ask(new URL(request.url).pathname.slice(1), env, ctx));
  },
};
