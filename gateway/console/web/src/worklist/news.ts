// What has just happened on one page, told on the next.

let waiting = "";

/** Has the next list say it. */
export function tellNext(text: string): void {
  waiting = text;
}

/** What is to be said now; it is said once. */
export function takeNews(): string {
  const text = waiting;
  waiting = "";
  return text;
}
