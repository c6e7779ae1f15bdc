import { type FormEvent, useState } from "react";
import { Trans, useTranslation } from "react-i18next";
import { messageFor, RetryKeys, ServiceError } from "../api/http";
import type { Instance } from "../api/runtime";
import type { JSONObject, Transition, WorkflowEvent } from "../api/types";
import { type Sent, sendEvent } from "../api/workflow";
import { asObject } from "../schemaform/layout";
import { SchemaForm } from "../schemaform/SchemaForm";
import { Button } from "../kit/Button";
import { Dialog } from "../kit/Dialog";
import { Notice } from "../kit/Notice";
import { readable } from "../words";

interface EventDialogProps {
  instance: Instance;
  event: WorkflowEvent;
  /** The instance's entity tag; the one when the dialog opens counts. */
  tag: string;
  onClose: () => void;
  /** The instance was found to have moved on: everything must be looked at again. */
  onMoved: () => void;
  onSent: (sent: Sent) => void;
}

/** Asks for the data of an event, or only for a confirmation, and sends it. */
export function EventDialog({ instance, event, tag: present, onClose, onMoved, onSent }: EventDialogProps) {
  const { t } = useTranslation();
  // What is decided upon is what was seen when the dialog opened.
  const [tag] = useState(present);
  const [keys] = useState(() => new RetryKeys());
  const [data, setData] = useState<JSONObject>({});
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState("");
  const schema = typeof event.schema === "object" ? event.schema : null;
  const hasFields = Object.keys(asObject(schema?.properties)).length > 0;

  const send = async (complete: JSONObject | null) => {
    if (busy) {
      return;
    }
    setBusy(true);
    setFault("");
    try {
      onSent(await sendEvent(instance, event.name, complete, tag, keys));
    } catch (cause) {
      setBusy(false);
      if (cause instanceof ServiceError && (cause.status === 412 || cause.status === 409)) {
        setFault(t("actions.moved"));
        onMoved();
      } else {
        setFault(messageFor(cause));
      }
    }
  };
  const foot = (
    <div className="dialog-foot">
      <Button onPress={onClose}>{t("cancel")}</Button>
      <Button type="submit" kind={event.style === "danger" ? "danger" : "main"} isDisabled={busy}>
        {busy ? t("actions.sending") : event.label || readable(event.name)}
      </Button>
    </div>
  );
  return (
    <Dialog title={event.label || readable(event.name)} onClose={onClose}>
      {fault !== "" && <Notice tone="bad" title={fault} alert />}
      <Leads transitions={event.transitions} />
      {hasFields && schema ? (
        <SchemaForm schema={schema} data={data} idPrefix="event" disabled={busy} onChange={setData} onSubmit={(complete) => void send(complete)}>
          {foot}
        </SchemaForm>
      ) : (
        <form
          onSubmit={(submitted: FormEvent) => {
            submitted.preventDefault();
            void send(event.schema ? {} : null);
          }}
        >
          {foot}
        </form>
      )}
    </Dialog>
  );
}

/** Where the event leads, as far as that is known before it is sent. */
function Leads({ transitions }: { transitions: Transition[] }) {
  const { t } = useTranslation();
  const ways = transitions.filter((transition) => transition.guard !== "false" && transition.targets.length > 0);
  const targets = [...new Set(ways.flatMap((way) => way.targets))];
  const from = [...new Set(ways.map((way) => way.nodeId))];
  if (targets.length === 0) {
    return null;
  }
  return (
    <p className="leads">
      <Trans i18nKey="actions.leads" values={{ from: from.map(readable).join(", "), to: targets.map(readable).join(` ${t("actions.or")} `) }} components={{ 1: <strong /> }} />
    </p>
  );
}
