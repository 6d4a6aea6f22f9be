export const shared = (n) => n * 2;
