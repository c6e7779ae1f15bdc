import { X } from "lucide-react";
import type { ReactNode } from "react";
import { Dialog as AriaDialog, Heading, Modal, ModalOverlay } from "react-aria-components";
import { useTranslation } from "react-i18next";
import { Button } from "./Button";

interface DialogProps {
  title: string;
  /** The person wants to leave: by the button, by Escape. */
  onClose: () => void;
  children: ReactNode;
}

/**
 * A modal dialog while it is rendered. A press beside it does not close it: what
 * was typed would be lost.
 */
export function Dialog({ title, onClose, children }: DialogProps) {
  const { t } = useTranslation();
  return (
    <ModalOverlay isOpen className="backdrop" onOpenChange={(open) => open || onClose()}>
      <Modal className="modal">
        <AriaDialog className="dialog">
          <div className="dialog-head">
            <Heading slot="title" level={2}>
              {title}
            </Heading>
            <Button kind="quiet" round aria-label={t("close")} onPress={onClose}>
              <X aria-hidden />
            </Button>
          </div>
          {children}
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}
