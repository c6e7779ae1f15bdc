import { useQueryClient } from "@tanstack/react-query";
import { CircleStop } from "lucide-react";
import { useState } from "react";
import type { Instance } from "../api/runtime";
import { Button } from "../kit/Button";
import { stopTree } from "./api";
import { type Child, whatEnds } from "./names";
import { Confirm, reasonFor, type Told } from "./parts";
import { operationsKey } from "./queries";
import { useText } from "./text";

interface StopTreeProps {
  of: Instance;
  name: string;
  /** The children that run, as far as they are known. */
  running: Child[];
  tell: (told: Told) => void;
}

/** Ends an instance and all that it has invoked, after a question that says what this is. */
export function StopTree({ of, name, running, tell }: StopTreeProps) {
  const t = useText();
  const queries = useQueryClient();
  const [asking, setAsking] = useState(false);
  const stop = async () => {
    try {
      await stopTree(of);
      tell({ tone: "good", title: t("inspect.stopped", { name }) });
    } catch (fault) {
      tell({ tone: "bad", title: t("inspect.stopFailed", { name }), detail: reasonFor(fault) });
    }
    await Promise.all([operationsKey, ["instance"], ["tasks"]].map((queryKey) => queries.invalidateQueries({ queryKey })));
  };
  return (
    <>
      <Button kind="danger" onPress={() => setAsking(true)}>
        <CircleStop aria-hidden />
        {t("inspect.stop")}
      </Button>
      {asking && <Confirm title={t("inspect.stopTitle", { name })} text={`${whatEnds(name, running, t)} ${t("inspect.stopForGood")}`} yes={t("inspect.stopYes")} no={t("inspect.stopNo")} danger onYes={stop} onClose={() => setAsking(false)} />}
    </>
  );
}
