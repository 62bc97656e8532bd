// The search of the site works in a worker, and a browser starts none for a page on the disk.
// There, a hidden frame takes its place. The name of this file keeps mkdocs-material from
// fetching its own shim from a server.
(() => {
  if (location.protocol !== "file:") return;

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

  window.Worker = FrameWorker;
})();
