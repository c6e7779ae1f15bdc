import { type KeyboardEvent, type ReactNode, useRef } from "react";

export interface Tab<Key extends string> {
  key: Key;
  label: string;
  /** How many things are behind it; missing while that is unknown. */
  count?: number | undefined;
}

interface TabsProps<Key extends string> {
  label: string;
  tabs: Tab<Key>[];
  selected: Key;
  onSelect: (key: Key) => void;
  /** What the selected tab shows. */
  children: ReactNode;
}

/** Tabs as ARIA describes them: arrows move between them, Tab leaves them. */
export function Tabs<Key extends string>({ label, tabs, selected, onSelect, children }: TabsProps<Key>) {
  const list = useRef<HTMLDivElement>(null);

  const onKeyDown = (event: KeyboardEvent) => {
    const at = tabs.findIndex((tab) => tab.key === selected);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    const next = to === undefined ? undefined : tabs[(to + tabs.length) % tabs.length];
    if (next) {
      event.preventDefault();
      onSelect(next.key);
      list.current?.querySelector<HTMLElement>(`#tab-${next.key}`)?.focus();
    }
  };

  return (
    <>
      <div className="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={onKeyDown}>
        {tabs.map((tab) => (
          <button
            key={tab.key}
            id={`tab-${tab.key}`}
            type="button"
            role="tab"
            className="tab"
            aria-selected={tab.key === selected}
            aria-controls="tab-panel"
            tabIndex={tab.key === selected ? 0 : -1}
            onClick={() => onSelect(tab.key)}
          >
            {tab.label}
            {tab.count !== undefined && <span className="tab-count">{tab.count}</span>}
          </button>
        ))}
      </div>
      <div id="tab-panel" role="tabpanel" aria-labelledby={`tab-${selected}`}>
        {children}
      </div>
    </>
  );
}
