/** Something that is wrong, said aloud: what, and what to do. */
import type { ReactElement, ReactNode } from "react";
import { Icon } from "./icons";

export function Notice({ title, children, button }: { title: string; children?: ReactNode; button?: ReactNode }): ReactElement {
  return (
    <div className="notice" role="alert">
      <Icon name="warning" size={18} />
      <div>
        <strong>{title}</strong>
        {children}
      </div>
      {button}
    </div>
  );
}
