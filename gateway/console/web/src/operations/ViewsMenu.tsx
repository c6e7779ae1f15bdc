import { Bookmark, Check, Settings2 } from "lucide-react";
import { type FormEvent, useState } from "react";
import { Button } from "../kit/Button";
import { Dialog } from "../kit/Dialog";
import { Item, MenuBox } from "../kit/Menu";
import { go, useQueryPart } from "../navigate";
import { useText } from "./text";
import { loadViews, queryOfView, saveViews, type View, withView } from "./views";

const pathOfView = (view: View) => `operations?section=instances&${view.query}`;

/** Views that this browser keeps: opened in the menu, saved and removed in a dialog. */
export function ViewsMenu({ user, workflow }: { user: string; workflow: string }) {
  const t = useText();
  const [asked] = useQueryPart();
  const [views, setViews] = useState(() => loadViews(user));
  const [isOpen, setOpen] = useState(false);
  const query = queryOfView(workflow, asked);
  const present = views.find((view) => view.query === query);
  const keep = (list: View[]) => {
    setViews(list);
    saveViews(user, list);
  };
  return (
    <>
      <MenuBox
        label={t("views.menu")}
        onAction={(key) => {
          const view = views.find((_, i) => key === `view-${i}`);
          if (view) {
            go(pathOfView(view));
          } else {
            setOpen(true);
          }
        }}
        trigger={
          <Button>
            <Bookmark aria-hidden />
            <span className="ops-view-name">{present?.name ?? t("views.menu")}</span>
          </Button>
        }
      >
        {views.map((view, i) => (
          <Item key={view.name} id={`view-${i}`} name={view.name} sign={view === present ? <Check aria-hidden /> : <span />} />
        ))}
        <Item id="manage" name={t("views.manage")} sign={<Settings2 aria-hidden />} />
      </MenuBox>
      {isOpen && <ViewsDialog views={views} query={query} onKeep={keep} onClose={() => setOpen(false)} />}
    </>
  );
}

interface ViewsDialogProps {
  views: View[];
  query: string;
  onKeep: (views: View[]) => void;
  onClose: () => void;
}

function ViewsDialog({ views, query, onKeep, onClose }: ViewsDialogProps) {
  const t = useText();
  const [name, setName] = useState("");
  const [isMissing, setMissing] = useState(false);
  const save = (event: FormEvent) => {
    event.preventDefault();
    if (name.trim() === "") {
      setMissing(true);
      return;
    }
    onKeep(withView(views, name, query));
    onClose();
  };
  return (
    <Dialog title={t("views.title")} onClose={onClose}>
      <form className="stack" onSubmit={save} noValidate>
        <p className="quiet">{t("views.help")}</p>
        {views.length === 0 ? (
          <p className="quiet">{t("views.none")}</p>
        ) : (
          <ul className="ops-views">
            {views.map((view) => (
              <li key={view.name}>
                <span>{view.name}</span>
                <Button small kind="danger" aria-label={t("actionOf", { action: t("views.remove"), name: view.name })} onPress={() => onKeep(views.filter((each) => each !== view))}>
                  {t("views.remove")}
                </Button>
              </li>
            ))}
          </ul>
        )}
        <div className="field">
          <label className="label" htmlFor="view-name">
            {t("views.name")}
          </label>
          <input id="view-name" maxLength={60} autoComplete="off" value={name} onChange={(event) => setName(event.target.value)} aria-invalid={isMissing} aria-describedby={isMissing ? "view-fault" : undefined} />
          {isMissing && (
            <p id="view-fault" className="field-fault">
              {t("views.nameNeeded")}
            </p>
          )}
        </div>
        <div className="dialog-foot">
          <Button type="submit" kind="main">
            {t("views.save")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
