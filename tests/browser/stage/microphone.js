// A microphone that speaks when the test says so: the page gets a MediaStream of its own, and clips are played into it.
// Chromium's fake device plays one file from the moment it opens, which no answer of a model waits for.
(() => {
  const clips = new Map();
  let context = null;
  let wire = null;
  navigator.mediaDevices.getUserMedia = async () => {
    context ??= new AudioContext();
    await context.resume();
    wire = context.createMediaStreamDestination();
    return wire.stream;
  };
  window.__microphone = {
    load: (name, base64, rate) => {
      const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
      const samples = new Int16Array(bytes.buffer);
      const clip = new AudioBuffer({ length: samples.length, sampleRate: rate, numberOfChannels: 1 });
      clip.copyToChannel(Float32Array.from(samples, (x) => x / 32768), 0);
      clips.set(name, clip);
    },
    say: (name) => {
      const source = new AudioBufferSourceNode(context, { buffer: clips.get(name) });
      source.connect(wire);
      source.start();
    },
  };
})();
