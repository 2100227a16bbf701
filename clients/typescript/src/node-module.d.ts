declare module "node:module" {
  export function register(specifier: URL): void;
}
