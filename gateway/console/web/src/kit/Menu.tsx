import { Check } from "lucide-react";
import type { ReactNode } from "react";
import { Header, Menu, MenuItem, MenuSection, MenuTrigger, Popover, type Selection } from "react-aria-components";

interface MenuBoxProps {
  /** The button that opens it. */
  trigger: ReactNode;
  label: string;
  children: ReactNode;
  onAction?: (key: string) => void;
}

/** A menu below a button. */
export function MenuBox({ trigger, label, children, onAction }: MenuBoxProps) {
  return (
    <MenuTrigger>
      {trigger}
      <Popover className="popover" placement="bottom end">
        <Menu aria-label={label} className="menu" {...(onAction ? { onAction: (key) => onAction(String(key)) } : {})}>
          {children}
        </Menu>
      </Popover>
    </MenuTrigger>
  );
}

interface ChoicesProps {
  title: string;
  options: readonly { id: string; name: string }[];
  chosen: readonly string[];
  onChoose: (ids: string[]) => void;
  /** Several may be chosen, none is allowed. */
  several?: boolean;
}

/** A part of a menu in which something is chosen. */
export function Choices({ title, options, chosen, onChoose, several = false }: ChoicesProps) {
  return (
    <MenuSection
      className="menu-section"
      selectionMode={several ? "multiple" : "single"}
      disallowEmptySelection={!several}
      selectedKeys={chosen}
      onSelectionChange={(keys: Selection) => onChoose(keys === "all" ? options.map(({ id }) => id) : [...keys].map(String))}
    >
      <Header className="menu-title">{title}</Header>
      {options.map((option) => (
        <Item key={option.id} id={option.id} name={option.name} chooses />
      ))}
    </MenuSection>
  );
}

interface ItemProps {
  id: string;
  name: string;
  sign?: ReactNode;
  chooses?: boolean;
}

export function Item({ id, name, sign, chooses = false }: ItemProps) {
  return (
    <MenuItem id={id} textValue={name} className="menu-item">
      {({ isSelected }) => (
        <>
          {chooses ? <span className="menu-sign">{isSelected && <Check aria-hidden />}</span> : sign && <span className="menu-sign">{sign}</span>}
          {name}
        </>
      )}
    </MenuItem>
  );
}
