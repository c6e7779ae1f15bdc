import type { ReactNode } from "react";
import { Tab, TabList, TabPanel, Tabs as AriaTabs } from "react-aria-components";
import { formatCount } from "../words";

export interface TabOf<Key extends string> {
  key: Key;
  label: string;
  /** Shown beside the label when it is known; null is more than the service counts. */
  count?: number | null | undefined;
}

interface TabsProps<Key extends string> {
  label: string;
  tabs: TabOf<Key>[];
  selected: Key;
  onSelect: (key: Key) => void;
  /** What the selected tab shows. */
  children: ReactNode;
}

export function Tabs<Key extends string>({ label, tabs, selected, onSelect, children }: TabsProps<Key>) {
  return (
    <AriaTabs className="tabs" selectedKey={selected} onSelectionChange={(key) => onSelect(String(key) as Key)} keyboardActivation="manual">
      <TabList aria-label={label} className="tab-list">
        {tabs.map((tab) => (
          <Tab key={tab.key} id={tab.key} className="tab">
            {tab.label}
            {tab.count !== undefined && <span className="count">{formatCount(tab.count)}</span>}
          </Tab>
        ))}
      </TabList>
      <TabPanel key={selected} id={selected} className="tab-panel">
        {children}
      </TabPanel>
    </AriaTabs>
  );
}
