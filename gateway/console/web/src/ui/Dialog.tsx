import { type ReactNode, useEffect, useId, useRef } from "react";
import { Icon } from "./Icon";

interface DialogProps {
  title: string;
  /** The person wants to leave: by the button, by Escape. */
  onClose: () => void;
  children: ReactNode;
}

/**
 * A modal dialog while it is rendered. The browser's own keeps the focus inside
 * and gives it back at the end.
 */
export function Dialog({ title, onClose, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const titleId = useId();

  useEffect(() => {
    const dialog = element.current;
    const before = document.activeElement;
    dialog?.showModal();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement && before.isConnected) {
        before.focus();
      }
    };
  }, []);

  return (
    <dialog
      ref={element}
      className="dialog"
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <div className="dialog-head">
        <h2 id={titleId}>{title}</h2>
        <button type="button" className="button-quiet" onClick={onClose} aria-label="Close">
          <Icon name="close" />
        </button>
      </div>
      {children}
    </dialog>
  );
}
