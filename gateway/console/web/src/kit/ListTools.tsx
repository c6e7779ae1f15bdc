import { ListFilter, Search, X } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { Input, SearchField } from "react-aria-components";
import { useTranslation } from "react-i18next";
import { Button } from "./Button";
import { Choices, Item, MenuBox } from "./Menu";

/** How long typing must pause before the list follows. */
const pause = 250;

interface SearchBoxProps {
  label: string;
  placeholder?: string;
  value: string;
  onSearch: (words: string) => void;
}

/** Looks for words; what is typed comes out when typing pauses. */
export function SearchBox({ label, placeholder, value, onSearch }: SearchBoxProps) {
  const { t } = useTranslation();
  const [text, setText] = useState(value);
  const told = useRef(value);
  const search = useRef(onSearch);
  useEffect(() => {
    search.current = onSearch;
  });
  // Back and forward change it from outside.
  useEffect(() => {
    if (value !== told.current) {
      told.current = value;
      setText(value);
    }
  }, [value]);
  useEffect(() => {
    if (text === told.current) {
      return;
    }
    const timer = window.setTimeout(() => {
      told.current = text;
      search.current(text);
    }, pause);
    return () => window.clearTimeout(timer);
  }, [text]);
  return (
    <SearchField aria-label={label} className="search" value={text} onChange={setText}>
      <Search aria-hidden className="search-sign" />
      <Input placeholder={placeholder ?? t("list.search")} />
      {text !== "" && (
        <Button kind="quiet" round small>
          <X aria-hidden />
        </Button>
      )}
    </SearchField>
  );
}

export interface FilterGroup {
  key: string;
  title: string;
  options: { id: string; name: string }[];
}

interface FilterMenuProps {
  groups: FilterGroup[];
  /** For each group what is chosen; nothing is everything. */
  chosen: Record<string, string[]>;
  onChoose: (group: string, ids: string[]) => void;
  onClear: () => void;
}

export function FilterMenu({ groups, chosen, onChoose, onClear }: FilterMenuProps) {
  const { t } = useTranslation();
  const shown = groups.filter((group) => group.options.length > 1 || (chosen[group.key]?.length ?? 0) > 0);
  const count = Object.values(chosen).flat().length;
  if (shown.length === 0) {
    return null;
  }
  return (
    <MenuBox
      label={t("list.filter")}
      onAction={(key) => key === "clear" && onClear()}
      trigger={
        <Button>
          <ListFilter aria-hidden />
          {count === 0 ? t("list.filter") : t("list.filterCount", { count })}
        </Button>
      }
    >
      {shown.map((group) => (
        <Choices key={group.key} title={group.title} options={group.options} chosen={chosen[group.key] ?? []} several onChoose={(ids) => onChoose(group.key, ids)} />
      ))}
      {count > 0 && <Item id="clear" name={t("list.clearFilter")} sign={<X aria-hidden />} />}
    </MenuBox>
  );
}
