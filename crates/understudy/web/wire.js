/* The editor's socket: engine.io 4 / socket.io 4 over WebSocket, with the real editor's messages.
 *
 * Guarantees: one `message` event per message of the server; pings are answered; the handlers are told once when
 * the connection ends, with the server's reason if it gave one.
 *
 * Does not reconnect by itself; editor.js decides.
 */

export class Wire {
  /** `auth` vouches for us: `{token}` to open, `{session}` to come back. */
  constructor(key, auth, handlers) {
    const here = window.location;
    const base = here.pathname.split('/web-apps/')[0];
    const scheme = here.protocol === 'https:' ? 'wss:' : 'ws:';
    const query = `EIO=4&transport=websocket&shardkey=${encodeURIComponent(key)}`;
    this.handlers = handlers;
    this.auth = auth;
    this.reason = null;
    this.ended = false;
    this.socket = new WebSocket(`${scheme}//${here.host}${base}/doc/${encodeURIComponent(key)}/c/?${query}`);
    this.socket.addEventListener('message', (event) => this.hear(String(event.data)));
    this.socket.addEventListener('close', () => this.end());
    this.socket.addEventListener('error', () => this.end());
  }

  say(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(`42${JSON.stringify(['message', message])}`);
  }

  close() {
    this.ended = true;
    this.socket.close();
  }

  hear(text) {
    const rest = text.slice(2);
    if (text[0] === '0') {
      this.socket.send(`40${JSON.stringify(this.auth)}`);
    } else if (text === '2') {
      this.socket.send('3');
    } else if (text.startsWith('40')) {
      this.handlers.joined();
    } else if (text.startsWith('44')) {
      this.reason = (JSON.parse(rest).data) || { code: 4006 };
      this.socket.close();
    } else if (text.startsWith('42')) {
      const [name, message] = JSON.parse(rest);
      if (name !== 'message') return;
      if (message.type === 'disconnectReason') this.reason = message;
      this.handlers.message(message);
    } else if (text.startsWith('41') || text[0] === '1') {
      this.socket.close();
    }
  }

  end() {
    if (this.ended) return;
    this.ended = true;
    this.handlers.ended(this.reason);
  }
}
