// Reads one question a line from standard input, {"filter": …, "document": …},
// and writes what mingo and sift say about it, {"mingo": v, "sift": v}: true,
// false, or the text of the error that it throws.
import { createInterface } from "node:readline";
import { Query } from "mingo";
import sift from "sift";

const verdict = (ask) => {
  try {
    return ask();
  } catch (error) {
    return `error: ${error.message}`;
  }
};

for await (const line of createInterface({ input: process.stdin })) {
  const { filter, document } = JSON.parse(line);
  const answer = {
    mingo: verdict(() => new Query(filter).test(document)),
    sift: verdict(() => sift(filter)(document)),
  };
  process.stdout.write(JSON.stringify(answer) + "\n");
}
