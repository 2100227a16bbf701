// Asks Ajv. Reads [{schema, values}] and prints, for each, whether each value is valid; null where Ajv does not take the schema.
import { readFileSync } from "node:fs";
import Ajv2020 from "ajv/dist/2020.js";
import Ajv7 from "ajv";

const options = { strict: false, validateFormats: false, logger: false, validateSchema: false };

const verdicts = JSON.parse(readFileSync(0, "utf8")).map(({ schema, values }) => {
  const isDraft7 = String(schema.$schema ?? "").includes("draft-07");
  const Ajv = isDraft7 ? Ajv7 : Ajv2020;
  try {
    const validate = new Ajv.default(options).compile(schema);
    return values.map((value) => validate(value));
  } catch {
    return null;
  }
});
console.log(JSON.stringify(verdicts));
