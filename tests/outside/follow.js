// In a page of the server's own: a session for the feed, and the browser's own EventSource.
async (token, names) => {
  const answer = await fetch('/v1/feed-session', {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}` },
  });
  if (answer.status !== 204) throw new Error(`the session: ${answer.status}`);
  window.seen = '';
  window.source = new EventSource('/v1/events?after=0');
  for (const name of names) {
    source.addEventListener(name, (event) => {
      seen += `${event.lastEventId} ${event.type}\n`;
    });
  }
}
