// Three things that the search of the site lacks. The name of this file keeps mkdocs-material from
// fetching its own shim from a server.
(() => {
  const SENTENCE = 5; // words, from which on a query is taken for a text that was pasted
  const QUERY = 2; // the kind of message that holds a query
  const RESULT = 3; // and that which holds what was found

  // What somebody typed who knows the operators: +word, -word, word*, title:word.
  const OPERATOR = /(?:^|\s)(?:[+-]\p{L}{2,}|(?:title|text):\p{L}+|\p{L}+\*)(?=\s|$)/u;

  // Of a pasted error, the search gets the words, and not the values: it would read signs as
  // operators, such as those before --storage, and each word as the beginning of others.
  const VALUES = /^replan:|\(got .*?\)|(?<![\p{L}\p{N}])'[^']*'|(?<=one of|are|has): [^.]*/gu;
  const plain = (message) => {
    if (message.data.trim().split(/\s+/).length < SENTENCE) return message;
    if (OPERATOR.test(message.data)) return message;
    const words = message.data.trim().replace(VALUES, " ").match(/[\p{L}\p{N}_]+/gu) ?? [];
    const told = new Set(words.filter((each) => /\p{L}{2}/u.test(each)));
    if (told.size === 0) return message;
    return { ...message, data: [...told].map((each) => `${each}^1`).join(" ") };
  };

  // Pages that have exactly the name that was typed come first, guides before the reference. The
  // search counts words, so all pages with the word in their names are the same to it.
  const named = (items, query) => {
    const wanted = query.trim().toLowerCase();
    const rank = (parts) => {
      const page = parts.find(({ location }) => !location.includes("#"));
      const name = page?.title.replace(/<[^>]+>/g, "").trim().toLowerCase();
      return name === wanted ? Number(page.location.startsWith("reference/")) : 2;
    };
    items.sort((one, other) => rank(one) - rank(other));
  };

  // The search works in a worker, and a browser starts none for a page on the disk. There, a
  // hidden frame takes its place.
  class FrameWorker extends EventTarget {
    constructor(url) {
      super();
      const address = new URL(url, document.baseURI).href;
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      const page = this.inside.document;
      // What the script of a worker calls, which a window has otherwise or not at all.
      this.inside.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      this.inside.importScripts = (...urls) => Promise.all(urls.map((each) => load(page, each)));
      this.ready = load(page, address);
    }

    postMessage(data) {
      this.ready.then(() => {
        this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data }));
      });
    }
  }

  const load = (page, url) =>
    new Promise((done, failed) => {
      const script = page.createElement("script");
      script.src = url;
      script.onload = done;
      script.onerror = failed;
      page.body.append(script);
    });

  const Kind = location.protocol === "file:" ? FrameWorker : window.Worker;
  window.Worker = class extends Kind {
    constructor(...given) {
      super(...given);
      // The first one that listens; the others get what it leaves.
      this.addEventListener("message", ({ data }) => {
        if (data.type === RESULT) named(data.data.items, this.query);
      });
    }

    postMessage(message, ...rest) {
      const isQuery = message.type === QUERY;
      if (isQuery) this.query = message.data;
      super.postMessage(isQuery ? plain(message) : message, ...rest);
    }
  };
})();
