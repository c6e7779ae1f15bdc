import type { Presentation } from "../api/types";
import { readable } from "../words";

/** What people call nodes and events: as the definition does, else the names made readable. */
export interface Words {
  node: (nodeId: string) => string;
  event: (name: string) => string;
  /** What somebody has done who sent the event, such as "approved it"; empty when the definition does not say. */
  done: (name: string) => string;
}

export function wordsOf(workflow: Presentation | undefined): Words {
  const event = (name: string) => workflow?.events.find((each) => each.name === name);
  return {
    node: (id) => workflow?.nodes.find((node) => node.nodeId === id)?.label ?? readable(id),
    event: (name) => event(name)?.label ?? readable(name),
    done: (name) => event(name)?.done ?? "",
  };
}
