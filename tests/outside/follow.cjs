// Follows the feed with the package `eventsource`, which reconnects by itself.
//
// Prints the id and the name of each event on stderr. Takes the address and the names that events
// can have as its arguments, and the token from the environment. Goes on until it is killed, or
// refused.

const { EventSource } = require('eventsource');

const [url, ...names] = process.argv.slice(2);
const authorization = `Bearer ${process.env.TOKEN}`;
const source = new EventSource(url, {
  fetch: (input, init) =>
    fetch(input, { ...init, headers: { ...init.headers, authorization } }),
});
for (const name of names) {
  source.addEventListener(name, (event) => console.error(event.lastEventId, event.type));
}
source.addEventListener('error', (event) => {
  if (source.readyState === source.CLOSED) console.error('refused', event.code);
});
