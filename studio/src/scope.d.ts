/** What the bundler takes beside TypeScript. */
declare module "*.css";
