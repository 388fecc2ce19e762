// Reads an AsyncAPI document with the parser of those who made AsyncAPI. Takes the file's name.
// Prints the addresses of the channels and the names of the messages.

const { readFileSync } = require('node:fs');
const { Parser } = require('@asyncapi/parser');

(async () => {
  const { document, diagnostics } = await new Parser().parse(readFileSync(process.argv[2], 'utf8'));
  // 0 is an error and 1 a warning; beyond are hints.
  const wrong = diagnostics.filter((diagnostic) => diagnostic.severity <= 1);
  for (const { code, message, path } of wrong) console.error(code, path.join('.'), message);
  if (document === undefined || wrong.length > 0) process.exit(1);
  for (const channel of document.channels().all()) console.log('channel', channel.address());
  for (const message of document.messages().all()) console.log('message', message.name());
})();
