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
import { keep, keptObject } from "../kit/kept";
import { Notice } from "../kit/Notice";
import { nameOf } from "../words";
import { usePresentation } from "../worklist/queries";
import { wordsOf } from "../instance/definitionWords";

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
  // What was typed is there again when the dialog is opened again, until it is sent.
  const store = `troupe.event.${instance.workflowId}/${instance.instanceId}/${event.name}`;
  const [data, setData] = useState<JSONObject>(() => keptObject(store) ?? {});
  const change = (next: JSONObject, byPerson: boolean) => {
    setData(next);
    if (byPerson) {
      keep(store, JSON.stringify(next));
    }
  };
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
      const sent = await sendEvent(instance, event.name, complete, tag, keys);
      keep(store, "");
      onSent(sent);
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
        {busy ? t("actions.sending") : nameOf(event)}
      </Button>
    </div>
  );
  return (
    <Dialog title={nameOf(event)} onClose={onClose}>
      {fault !== "" && <Notice tone="bad" title={fault} alert />}
      <Leads transitions={event.transitions} workflowId={instance.workflowId} />
      {hasFields && schema ? (
        <SchemaForm schema={schema} data={data} idPrefix="event" disabled={busy} onChange={change} onSubmit={(complete) => void send(complete)}>
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
function Leads({ transitions, workflowId }: { transitions: Transition[]; workflowId: string }) {
  const { t } = useTranslation();
  const words = wordsOf(usePresentation(workflowId).data);
  const ways = transitions.filter((transition) => transition.guard !== "false" && transition.targets.length > 0);
  const targets = [...new Set(ways.flatMap((way) => way.targets))];
  if (targets.length === 0) {
    return null;
  }
  return (
    <p className="leads">
      <Trans i18nKey="actions.leads" values={{ to: targets.map(words.node).join(` ${t("actions.or")} `) }} components={{ 1: <strong /> }} />
    </p>
  );
}
