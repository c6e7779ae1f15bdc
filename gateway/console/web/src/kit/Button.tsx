import type { ReactNode, Ref } from "react";
import { Button as AriaButton, type ButtonProps as AriaButtonProps } from "react-aria-components";

export type ButtonKind = "main" | "plain" | "danger" | "quiet" | "text";

/** The button of an event, by the style that its definition gives it. */
export const kinds: Record<string, ButtonKind> = { primary: "main", danger: "danger" };

export interface ButtonProps extends Omit<AriaButtonProps, "className" | "style" | "children"> {
  kind?: ButtonKind;
  small?: boolean;
  /** A sign alone; aria-label then says what it does. */
  round?: boolean;
  children?: ReactNode;
  ref?: Ref<HTMLButtonElement>;
}

export function Button({ kind = "plain", small = false, round = false, ...rest }: ButtonProps) {
  return <AriaButton {...rest} className={`button button-${kind}${small ? " button-small" : ""}${round ? " button-round" : ""}`} />;
}
