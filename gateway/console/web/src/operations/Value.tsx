import { valueText } from "../kit/Value";

const charactersMax = 120;

const cut = (text: string) => (text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text);

/** A value of an instance in a list: always text, and not too much of it. */
export function Value({ value }: { value: unknown }) {
  const text = valueText(value);
  if (text === "") {
    return <span className="quiet">–</span>;
  }
  return typeof value === "object" ? <code className="ops-json">{cut(text)}</code> : cut(text);
}
