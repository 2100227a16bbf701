// source: deno issue 29980
// rule: an import that is written down is refused like one that is made
// expected throw: {"during_load":true}
import secrets from "file:///etc/passwd";
export default { run(_) { return secrets; } };
