declare module "ws" {
  const constructor: { new (url: string): WebSocket };
  export default constructor;
}
