import { formatCount } from "../words";
import type { TabOf } from "./Tabs";

interface SwitchProps<Key extends string> {
  label: string;
  options: TabOf<Key>[];
  selected: Key;
  onSelect: (key: Key) => void;
}

/** A few ways to see a list, of which one is on. */
export function Switch<Key extends string>({ label, options, selected, onSelect }: SwitchProps<Key>) {
  return (
    <div className="switch" role="group" aria-label={label}>
      {options.map((option) => (
        <button key={option.key} type="button" className="switch-part" aria-pressed={option.key === selected} onClick={() => onSelect(option.key)}>
          {option.label}
          {option.count !== undefined && <span className="count">{formatCount(option.count)}</span>}
        </button>
      ))}
    </div>
  );
}
