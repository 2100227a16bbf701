// Node 20 has no WebSocket of its own.
import WebSocketOfNode from "ws";

export const open = (url: string): WebSocket => new WebSocketOfNode(url);
