import type { VoiceAgentOptions } from "voxbridge";

/** What the agent is. It begins in text; the microphone is asked for when somebody talks. */
export const config: VoiceAgentOptions = {
  url: "http://127.0.0.1:8420", // your gateway
  apiKey: "pk_test_…", // `voxbridge platform make` prints one
  microphone: false,
  instructions: "You are a helpful assistant of a train station. Be concise.",
  greeting: "Hi! Ask me when your train leaves.",
  tools: {
    next_train: {
      description: "Tell when the next train to a city leaves.",
      parameters: { city: { type: "string", description: "City to go to" } },
      // Runs on the server: it sees its arguments, and nothing of this file.
      handler: async ({ city }) => {
        const minutes = { Rome: 12, Vienna: 35, Paris: 50 }[String(city)];
        return minutes ? { city, leaves_in_minutes: minutes, platform: 3 } : { city, error: "No train goes there." };
      },
    },
  },
};
