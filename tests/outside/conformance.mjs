// Runs the protocol's conformance suite under a Node that is older than it expects: one module that
// it loads names a function of Node 22, for a command that is not used here.
import { register } from "node:module";
import { pathToFileURL } from "node:url";
import path from "node:path";

const suite = path.join(
  process.env.NODE_PATH,
  "@modelcontextprotocol/conformance/dist/index.js",
);
const fs = `data:text/javascript,${encodeURIComponent(
  "export * from 'node:fs'; export const globSync = () => { throw new Error('not here'); };",
)}`;
const hooks = `export const resolve = (name, context, next) =>
  name === "fs" && context.parentURL.endsWith("/conformance/dist/index.js")
    ? { url: ${JSON.stringify(fs)}, shortCircuit: true }
    : next(name, context);`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);
process.argv[1] = suite;
await import(pathToFileURL(suite));
