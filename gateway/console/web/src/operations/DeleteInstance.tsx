import { useQueryClient } from "@tanstack/react-query";
import { Trash2 } from "lucide-react";
import { useState } from "react";
import type { Instance } from "../api/runtime";
import { Button } from "../kit/Button";
import { go } from "../navigate";
import { pathOf } from "./address";
import { deleteInstance } from "./api";
import { Confirm, reasonFor, type Told } from "./parts";
import { operationsKey } from "./queries";
import { useText } from "./text";

interface DeleteInstanceProps {
  of: Instance;
  name: string;
  tell: (told: Told) => void;
}

/** Deletes an instance with its children, after a question, and leaves its page. */
export function DeleteInstance({ of, name, tell }: DeleteInstanceProps) {
  const t = useText();
  const queries = useQueryClient();
  const [asking, setAsking] = useState(false);
  const erase = async () => {
    try {
      await deleteInstance(of);
      go(pathOf("instances", { workflow: of.workflowId }));
    } catch (fault) {
      tell({ tone: "bad", title: t("inspect.deleteFailed", { name }), detail: reasonFor(fault) });
    }
    await Promise.all([operationsKey, ["instance"], ["tasks"]].map((queryKey) => queries.invalidateQueries({ queryKey })));
  };
  return (
    <>
      <Button kind="danger" onPress={() => setAsking(true)}>
        <Trash2 aria-hidden />
        {t("inspect.delete")}
      </Button>
      {asking && <Confirm title={t("inspect.deleteTitle", { name })} text={t("inspect.deleteText")} yes={t("inspect.deleteYes")} no={t("inspect.deleteNo")} danger onYes={erase} onClose={() => setAsking(false)} />}
    </>
  );
}
